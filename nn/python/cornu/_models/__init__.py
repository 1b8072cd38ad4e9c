"""Models: layers put together, trained, saved, explained."""
