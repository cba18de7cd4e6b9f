"""The streams watch on a real Kubernetes API server, with a small stand-in for the kubelet."""
