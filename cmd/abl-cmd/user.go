//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/helper"
)

// nameUser adds the user and the group of this container to /etc/passwd and /etc/group. In abl's images these
// are links to files in the home, and saved has the image's files. Images of earlier versions have no such
// files, and a container without a home needs none. A program in the container could replace the files, which
// would only affect itself.
func nameUser(saved, home string, uid, gid int) error {
	for name, entry := range map[string]string{
		helper.PasswdFile: fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", helper.User, uid, gid, home),
		helper.GroupFile:  fmt.Sprintf("%s:x:%d:\n", helper.User, gid),
	} {
		image, err := os.ReadFile(filepath.Join(saved, name))
		if err != nil {
			return err
		}
		// The first entry of an id has its name, whatever the image calls it.
		for line := range strings.Lines(string(image)) {
			if !strings.HasPrefix(line, helper.User+":") {
				entry += line
			}
		}
		if err := os.WriteFile(filepath.Join(home, "."+name), []byte(entry), 0o444); err != nil {
			return err
		}
	}
	return nil
}
