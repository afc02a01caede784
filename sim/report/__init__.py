"""What a program costs a machine, from the program alone."""
