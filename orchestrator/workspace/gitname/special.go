package gitname

import "strings"

// dotfile is a file that git reads out of a tree. NTFS gives long names a
// short one: six letters and ~1 to ~4, then a hash of the name.
type dotfile struct{ name, hashed string }

var special = [...]dotfile{
	{"gitmodules", "gi7eba"},
	{"gitignore", "gi250a"},
	{"gitattributes", "gi7d29"},
	{"mailmap", "maba30"},
}

func (d dotfile) hfs(name string) bool { return hfsEqual(name, "."+d.name) }

func (d dotfile) matches(name string) bool {
	if hasFold(name, "."+d.name) && trailsOff(name[len(d.name)+1:], ":") {
		return true
	}
	if hasFold(name, d.name[:6]+"~") && len(name) >= 8 && name[7] >= '1' && name[7] <= '4' {
		return trailsOff(name[8:], ":")
	}
	return d.short(name)
}

// short knows the names NTFS makes when ~1 to ~4 are taken: eight characters,
// a stem of the hashed form cut by ~ and a number.
func (d dotfile) short(name string) bool {
	if len(name) < 8 {
		return false
	}
	stem, number, found := strings.Cut(name[:8], "~")
	if !found || len(stem) > 6 || number == "" || number[0] < '1' {
		return false
	}
	return strings.EqualFold(stem, d.hashed[:len(stem)]) && digits(number) && trailsOff(name[8:], ":")
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }
