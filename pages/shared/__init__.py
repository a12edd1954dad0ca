"""What every page of the console shares, and how a page is written.

A page is a direct script of at most about 150 lines: inputs, one call into memcore, drawing.

    \"\"\"Gate: why was this (not) stored?\"\"\"

    import streamlit as st

    from memcore.models import Draft
    from pages.shared import messages, present, reads, session

    library = messages.need_library()          # or the "no library yet" state, and stop
    text = st.text_area("Text", key="gate_text")
    if not text:
        st.stop()
    with messages.trouble("Judging the text"):  # a MemcoreError becomes cause and next step
        verdict = reads.verdict(session.actor(), library.id, text)
    st.dataframe(present.checks(verdict), column_config=present.CHECK_COLUMNS, alt="…")

Rules of the house (the frame draws title, pickers and notices; a page never calls `st.title`):

- `session` knows the open core, the actor and the library. Call `session.service()` through its
  module (`from pages.shared import session`), so that tests can swap it.
- `reads` holds every `st.cache_data`. Each takes the actor as a hashed argument, because that cache
  is global to the server: without it one person's rows reach another's browser. Add yours there.
- Writes happen in callbacks (`on_click=…`), which run before the page is drawn again:

      def archive(memory_id: str) -> None:
          with messages.attempt("Archiving"):          # a failure becomes a notice
              changed = session.service().memories.change_status(...)
              messages.done("1 memory archived.", undo=changed.batch_id)  # toast and Undo button
          reads.forget()

  `acts` has the callbacks and dialogs that memories share (status, edit, delete, export, and the
  report of a bulk act); `memory.panel(id, key=…)` draws one memory whole beside any list. In a
  fragment or dialog, end with `st.rerun()` so that toast and Undo are drawn.

- `present` turns value objects into tables, column configurations and Plotly figures. It draws
  nothing. Figures are drawn by `st.plotly_chart(fig, alt=…, key=…, config=present.PLOTLY)`.
- Widgets have the key `<page>_<thing>`; what is worth sharing is bound to the URL with
  `bind="query-params"`. Act by id, never by row position.
- Links between pages: `session.link("memories", "4 archived", memories_status="archived")` keeps
  library and actor, so the number on the card is the number on the page it opens. One memory:
  `session.link("memories", "Open", memory=memory_id)`.
- Stored text is shown through `messages.plain`, so that it formats nothing and loads nothing.
- Times: `present.when(moment, session.zone())`; tables take `session.zone()` and label the column.
"""
