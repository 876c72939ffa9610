"""The page of `boolbert serve`: type a query, see how it is read, click words into or out of NOT, compare results."""
