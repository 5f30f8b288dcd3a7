"""Website: the pages of the documentation that follow from the code, the help, the server and the notebooks."""
