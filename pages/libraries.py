"""Libraries."""

import streamlit as st

from pages.shared import reads, session

st.write(reads.libraries(session.actor()))
