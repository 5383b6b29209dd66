package hostfs

// BootID returns the kernel's name for the time since the machine was started, "" if the kernel
// does not report one. A power cut lies between two boots: files that were not synced before it
// may have lost their content.
func BootID() string {
	data, _ := Read("/proc/sys/kernel/random", "boot_id", 100)
	return string(data)
}
