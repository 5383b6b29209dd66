package helper

// HelperNull stands in the app's place while the tests themselves are tested: it
// answers everything with nothing.
const HelperNull = "abl-null"

// Beside is the n-th port, from 1, in the app's own network namespace for what
// stands in its place or before it, given the app's own.
func Beside(app, n int) int {
	const base, few = BrokerPort, 20
	if app > base && app < base+few {
		return base + few + n
	}
	return base + n
}
