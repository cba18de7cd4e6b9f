"""The kernel: jobs that happen once, at the right time, and can say why they wait."""
