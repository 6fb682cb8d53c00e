package sessionstate

// Len returns the number of sessions in the table. Expired ones count until the next Get.
func (t *Sessions) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.entries.byKey)
}
