package revive

// EndText says to a client why its request has no answer whose server has ended.
func EndText(how error) string {
	if how == nil {
		return "the server ended before it answered"
	}
	return "the server ended before it answered: " + how.Error()
}
