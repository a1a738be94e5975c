// A virtual disk with snapshots in memory, as a target of the conformance kit.
//
//	go build -C conformance/examples/go_disk -o go-disk
//	conformance run --target exec:conformance/examples/go_disk/go-disk
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
)

const block = 512 // bytes

// Request is one line from the kit. Data is base64 on the wire; View is absent for the live disk.
type Request struct {
	Op     string
	Blocks int
	LBA    uint64
	Count  int
	Data   []byte
	Name   string
	View   *string
}

// Response is one line to the kit.
type Response struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	Data  []byte `json:"data,omitempty"`
}

// Hello says what this disk is and can do.
type Hello struct {
	OK           bool     `json:"ok"`
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	BlockSize    int      `json:"block_size"`
	CrashProfile string   `json:"crash_profile"`
	Capabilities []string `json:"capabilities"`
}

// Disk is what the live view and every snapshot read as.
type Disk struct {
	live      []byte
	snapshots map[string][]byte
}

var sound = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func refused(code string) Response { return Response{Error: code} }

func clone(data []byte) []byte { return append([]byte(nil), data...) }

// within says where a range of so many bytes starts, and whether it ends before the disk does.
func (d *Disk) within(lba uint64, length int) (int, bool) {
	blocks := uint64(len(d.live) / block)
	if lba > blocks || uint64(length/block) > blocks-lba {
		return 0, false
	}
	return int(lba) * block, true
}

func (d *Disk) answer(q Request) Response {
	switch q.Op {
	case "create":
		d.live, d.snapshots = make([]byte, q.Blocks*block), map[string][]byte{}
	case "write":
		at, fits := d.within(q.LBA, len(q.Data))
		if !fits {
			return refused("out-of-range")
		}
		copy(d.live[at:], q.Data)
	case "unmap":
		at, fits := d.within(q.LBA, q.Count*block)
		if !fits {
			return refused("out-of-range")
		}
		clear(d.live[at : at+q.Count*block])
	case "read":
		view := d.live
		if q.View != nil {
			var exists bool
			if view, exists = d.snapshots[*q.View]; !exists {
				return refused("no-such-snapshot")
			}
		}
		at, fits := d.within(q.LBA, q.Count*block)
		if !fits {
			return refused("out-of-range")
		}
		return Response{OK: true, Data: view[at : at+q.Count*block]}
	case "snapshot":
		if !sound.MatchString(q.Name) {
			return refused("bad-request")
		}
		if _, exists := d.snapshots[q.Name]; exists {
			return refused("snapshot-exists")
		}
		d.snapshots[q.Name] = clone(d.live)
	case "delete", "revert":
		view, exists := d.snapshots[q.Name]
		if !exists {
			return refused("no-such-snapshot")
		}
		if q.Op == "delete" {
			delete(d.snapshots, q.Name)
		} else {
			d.live = clone(view)
		}
	case "flush", "restart", "crash": // nothing to lose: it all stays in memory
	default:
		return refused("unsupported")
	}
	return Response{OK: true}
}

func main() {
	disk := Disk{}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var q Request
		if in.Decode(&q) != nil || q.Op == "bye" {
			return
		}
		if q.Op == "hello" {
			out.Encode(Hello{true, "go-disk", "1", block, "ack",
				[]string{"unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"}})
			continue
		}
		out.Encode(disk.answer(q))
	}
}
