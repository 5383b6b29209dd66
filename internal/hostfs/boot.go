package hostfs

// BootID returns the kernel's boot id, "" if the kernel reports none. A new id means that the
// machine was restarted, possibly after a power failure: files that were not synced before may have
// lost their content.
func BootID() string {
	data, _ := Read("/proc/sys/kernel/random", "boot_id", 100)
	return string(data)
}
