"""One vLLM serves the frozen base model and any number of specialists, which are loaded while it runs.

`specialist.serve.slots` says what room a server needs and what it cannot serve, `loading` puts an adapter into a
running server, `merged` writes a base model with an adapter worked in, and `model` makes all of it a
`automem.models.protocol.Model`. ``automem serve`` is the same for people.
"""
