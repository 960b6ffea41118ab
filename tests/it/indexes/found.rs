//! What the property found, each as the statements that show it.
