"""Model endpoints that speak OpenAI's HTTP interface: where they may be (`guard`) and how they
are asked (`client`). Embeddings and extraction stand on this."""
