// Package digest sums up the files of a workspace that are in no commit. What
// has not changed since the time before is not read again: a cache remembers,
// by what the file system says of a file, what its content was.
package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"abl/orchestrator/sweep"
	"abl/orchestrator/workspace/scan"
)

// Limits of one sweep.
const (
	maxFile  = 256 << 20 // bytes; a larger file is not read
	maxBytes = 1 << 30   // bytes read at all; the rest waits for the next sweep
)

const (
	tooLarge = "larger than 256 MiB"
	tooMuch  = "more than 1 GiB was new"
)

// Take sums up the files below root that a walk left out. found is told of each
// file that had capabilities of its own, which are cleared. The files must not
// change meanwhile; what cannot be read is said to be unread.
func Take(ctx context.Context, root string, left []scan.Ignored, cache *Cache, found func(path, what string)) (sweep.Ignored, error) {
	t := &taking{root: root, cache: cache, found: found, room: maxBytes}
	var all sweep.Ignored
	for _, folder := range left {
		for _, f := range folder.Files {
			all.Files++
			all.Bytes += f.Size
		}
	}
	t.single = all.Files < sweep.MaxListed
	sums, err := t.folders(ctx, left)
	if err != nil {
		return all, err
	}
	if t.single {
		for i := range sums {
			all.Listed = append(all.Listed, sums[i].files...)
		}
		return all, nil
	}
	all.Folders = tops(left, sums)
	return all, nil
}

// taking is one run of Take.
type taking struct {
	root   string
	cache  *Cache
	found  func(path, what string)
	single bool // name each file

	mu   sync.Mutex
	room int64 // bytes that may still be read
}

// folderSum is what one folder came to.
type folderSum struct {
	files  []sweep.File // of single alone
	lines  string       // hexadecimal digest of the folder's own lines
	unread int64
}

// folders sums them up side by side.
func (t *taking) folders(ctx context.Context, left []scan.Ignored) ([]folderSum, error) {
	sums := make([]folderSum, len(left))
	var work sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for i := range next {
				sums[i] = t.folder(left[i])
			}
		})
	}
	var err error
	for i := range left {
		if err = ctx.Err(); err != nil {
			break
		}
		next <- i
	}
	close(next)
	work.Wait()
	return sums, err
}

func (t *taking) folder(left scan.Ignored) folderSum {
	key := folderKey(left)
	if !t.single {
		if kept, ok := t.cache.get(left.Folder, key); ok {
			lines, unread, _ := strings.Cut(kept, ":")
			n, _ := strconv.ParseInt(unread, 10, 64) // "" is none
			return folderSum{lines: lines, unread: n}
		}
	}
	dir, err := openBelow(t.root, left.Folder)
	var s folderSum
	again := false // what could not be read may be readable next time
	h := sha256.New()
	for i := range left.Files {
		f := sweep.File{Path: left.Folder + left.Files[i].Name, Size: left.Files[i].Size}
		if err != nil {
			f.Unread = err.Error()
		} else {
			t.file(dir, &left.Files[i], &f)
		}
		if f.Unread != "" {
			s.unread++
			again = again || f.Unread != tooLarge
		}
		fmt.Fprintf(h, "%q %d %s\n", left.Files[i].Name, f.Size, f.SHA256)
		if t.single {
			s.files = append(s.files, f)
		}
	}
	if err == nil {
		dir.Close()
	}
	s.lines = hex.EncodeToString(h.Sum(nil))
	if !t.single && !again && key != "" {
		t.cache.put(left.Folder, key, fmt.Sprintf("%s:%d", s.lines, s.unread))
	}
	return s
}

// file fills in the digest of one file, or why there is none.
func (t *taking) file(dir openDir, is *scan.IgnoredFile, into *sweep.File) {
	key := ""
	if t.single && !is.Unsettled {
		key = fileKey(is)
		if sum, ok := t.cache.get(into.Path, key); ok {
			into.SHA256 = sum
			return
		}
	}
	if !t.take(is.Size) {
		into.Unread = tooMuch
		return
	}
	sum, cleared, err := dir.sum(is)
	if cleared != "" {
		t.found(into.Path, cleared)
		key = "" // clearing them changed the file's times
	}
	if err != nil {
		into.Unread = err.Error()
		return
	}
	into.SHA256 = sum
	if key != "" {
		t.cache.put(into.Path, key, sum)
	}
}

// take asks for room for a file of this size.
func (t *taking) take(size int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if size > maxFile {
		return true // it is not read
	}
	if size > t.room {
		return false
	}
	t.room -= size
	return true
}

// tops adds the folders up by the first step of their paths. Both lists are in
// the order of the paths.
func tops(left []scan.Ignored, sums []folderSum) []sweep.Folder {
	var all []sweep.Folder
	h := sha256.New()
	close := func() {
		if len(all) > 0 {
			all[len(all)-1].SHA256 = hex.EncodeToString(h.Sum(nil))
		}
	}
	for i := range left {
		top := "."
		if first, _, below := strings.Cut(left[i].Folder, "/"); below {
			top = first
		}
		if n := len(all); n > 0 && n >= sweep.MaxFolders && all[n-1].Path != top {
			top = "…"
		}
		if len(all) == 0 || all[len(all)-1].Path != top {
			close()
			h.Reset()
			all = append(all, sweep.Folder{Path: top})
		}
		last := &all[len(all)-1]
		last.Unread += sums[i].unread
		for _, f := range left[i].Files {
			last.Files++
			last.Bytes += f.Size
		}
		fmt.Fprintf(h, "%s %q\n", sums[i].lines, left[i].Folder)
	}
	close()
	return all
}
