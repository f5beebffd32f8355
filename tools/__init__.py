"""What writes files of this repository from others, and says where they differ."""
