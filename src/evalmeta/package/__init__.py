"""Which files make up a deployment: the project, its components, and the zip that carries them."""
