// A virtual disk with snapshots in memory, as a target of the conformance kit. It takes eight
// requests at a time, each in a goroutine of its own: version 2 of the dialogue.
//
//	go build -C conformance/examples/go_disk -o go-disk
//	conformance run --target exec:conformance/examples/go_disk/go-disk
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"regexp"
	"sync"
)

const block = 512 // bytes

// Request is one line from the kit. Data is base64 on the wire; View is absent for the live disk.
type Request struct {
	ID     int
	Op     string
	Blocks int
	LBA    uint64
	Count  int
	Data   []byte
	Name   string
	View   *string
}

// Response is one line to the kit. It has the ID of its request.
type Response struct {
	ID    int    `json:"id"`
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
	Protocol     int      `json:"protocol"`
	InFlight     int      `json:"in_flight"`
	Atomic       string   `json:"atomic"`
}

// Disk is what the live view and every snapshot read as.
type Disk struct {
	lock      sync.Mutex
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
	d.lock.Lock() // so each request is one step of the order: "atomic":"request"
	defer d.lock.Unlock()
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
		return Response{OK: true, Data: clone(view[at : at+q.Count*block])}
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

// Printer writes answers, one line at a time. Answers of an earlier life are not given: a power cut
// ends what is in flight.
type Printer struct {
	lock sync.Mutex
	life int
	out  *json.Encoder
}

func (p *Printer) print(id, life int, r Response) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if r.ID = id; life == p.life {
		p.out.Encode(r)
	}
}

func (p *Printer) cut() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.life++
}

func main() {
	disk, printer := Disk{}, Printer{out: json.NewEncoder(os.Stdout)}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	var flying sync.WaitGroup
	for {
		var q Request
		if in.Decode(&q) != nil || q.Op == "bye" {
			return
		}
		switch q.Op {
		case "hello":
			printer.out.Encode(Hello{true, "go-disk", "2", block, "ack",
				[]string{"unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"},
				2, 8, "request"})
			continue
		case "crash": // nothing takes effect after it
			printer.cut()
			flying.Wait()
		}
		flying.Add(1)
		go func(life int) {
			defer flying.Done()
			printer.print(q.ID, life, disk.answer(q))
		}(printer.life) // only this goroutine changes it
	}
}
