package activator

// Deafen makes the activator drop every notification.
func (a *Activator) Deafen() { a.deaf = true }
