"""An org over httpx: embedded, served or Salesforce's own, by the same calls."""
