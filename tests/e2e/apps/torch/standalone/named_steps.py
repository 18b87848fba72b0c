"""A loop that names its steps itself."""
import deja

for number in deja.steps(range(3), start=10):
    print(number)
