"""What comes from outside and what goes out: values, files, untrusted JSON. Nothing else parses or writes."""
