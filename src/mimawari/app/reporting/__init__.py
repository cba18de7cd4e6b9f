"""Reports of unexpected errors: to the log, and to Sentry or BugSnag where a setting says so."""
