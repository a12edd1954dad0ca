"""Overview: what is stored, what the gate lets through, what agents recall."""

import streamlit as st

from pages.shared import messages

library = messages.need_library()
st.write(library.name)
