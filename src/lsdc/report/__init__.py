"""Runs for people: report pages and terminal output."""
