"""The paper's data sets, features and experiments, on the public names of safesift."""
