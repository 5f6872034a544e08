"""Tables, plots and pages: pure functions of records."""
