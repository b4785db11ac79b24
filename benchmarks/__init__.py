"""Speed and size, each beside a peer in the same run."""
