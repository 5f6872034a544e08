"""Serving: requests of many clients decoded together, from Python or over HTTP."""
