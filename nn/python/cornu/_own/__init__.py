"""What programs write themselves: layers, models, losses, metrics and training steps."""
