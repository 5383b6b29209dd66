package gitobj

import (
	"errors"
	"fmt"
	"os"
	"path"

	"abl/orchestrator/workspace/gitdir"
)

// WriteLoose writes one object to its own file, durably.
func WriteLoose(d gitdir.Dir, k Kind, name Hash, data []byte) error {
	hex := name.String()
	folder := path.Join("objects", hex[:2])
	final := d.Join(folder, hex[2:])
	if info, err := os.Lstat(final); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return gitdir.SyncFolder(d.Join(folder)) // it may be fresh and not yet durable
	}
	if err := writeLoose(d, folder, final, append(header(k, int64(len(data))), data...)); err != nil {
		return fmt.Errorf("cannot write object %s: %w", hex, err)
	}
	return nil
}

func writeLoose(d gitdir.Dir, folder, final string, content []byte) error {
	if err := d.Mkdir(folder); err != nil {
		return err
	}
	f, err := d.Temp(folder, "tmp_obj_abl")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(deflate(content))
	if err = errors.Join(err, f.Chmod(0o444), f.Sync(), f.Close()); err != nil {
		return err
	}
	return gitdir.Publish(f.Name(), final)
}
