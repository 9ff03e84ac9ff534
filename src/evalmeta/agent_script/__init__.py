"""Agent Script: the language of agents in Salesforce projects, read into a syntax tree and checked."""
