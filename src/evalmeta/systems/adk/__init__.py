"""Google's ADK: eval sets of both its languages, their criteria, and what came before them."""
