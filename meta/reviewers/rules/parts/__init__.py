"""Parts of a generated ``hooks.py``: each file holds one class, whose source is copied as it stands.

What a part may import and do is what hooks may (`automem.hooks.api`).
"""
