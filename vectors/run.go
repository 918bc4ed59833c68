// Runs the vectors against the script on a Redis, without other packages:
// `npx nestjs-sluice call --script > sluice.lua`, then `go run run.go sluice.lua localhost:6379`, in this folder.
// Exits with 1 if a reply differs.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

type step struct {
	Redis *struct {
		Keys    []string
		Program string
		Reply   []any
	}
}

type file struct {
	Cases []struct {
		Name  string
		Steps []step
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return value
}

// Sends a command, and reads its reply: texts, and numbers as texts.
func send(redis *bufio.ReadWriter, words ...string) []string {
	fmt.Fprintf(redis, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(redis, "$%d\r\n%s\r\n", len(word), word)
	}
	must(0, redis.Flush())
	return read(redis)
}

func read(redis *bufio.ReadWriter) []string {
	line := strings.TrimSpace(must(redis.ReadString('\n')))
	length, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '-':
		must(0, fmt.Errorf("%s", line))
	case '$':
		text := make([]byte, length+2)
		must(io.ReadFull(redis, text))
		return []string{string(text[:length])}
	case '*':
		var values []string
		for ; length > 0; length-- {
			values = append(values, read(redis)...)
		}
		return values
	}
	return []string{line[1:]}
}

// A `*` stands for any number: that of held units is the server's.
func same(expected []any, reply []string) bool {
	for index, each := range expected {
		if len(expected) != len(reply) || each != "*" && fmt.Sprintf("%.0f", each) != reply[index] {
			return false
		}
	}
	return true
}

func main() {
	connection := must(net.Dial("tcp", os.Args[2]))
	redis := bufio.NewReadWriter(bufio.NewReader(connection), bufio.NewWriter(connection))
	sha := send(redis, "SCRIPT", "LOAD", string(must(os.ReadFile(os.Args[1]))))[0]
	prefix := fmt.Sprintf("vectors-%d-%s", os.Getpid(), send(redis, "TIME")[0])
	ticket := regexp.MustCompile(`\{(\d+)\.(\d+)\}`)
	ran, wrong := 0, 0
	for _, path := range must(filepath.Glob("*.json")) {
		var vectors file
		must(0, json.Unmarshal(must(os.ReadFile(path)), &vectors))
		for _, each := range vectors.Cases {
			replies := map[string][]string{}
			for index, step := range each.Steps {
				if step.Redis == nil {
					continue
				}
				program := ticket.ReplaceAllStringFunc(step.Redis.Program, func(found string) string {
					at := ticket.FindStringSubmatch(found)
					return replies[at[1]][must(strconv.Atoi(at[2]))]
				})
				words := []string{"EVALSHA", sha, strconv.Itoa(len(step.Redis.Keys))}
				for _, key := range step.Redis.Keys {
					words = append(words, strings.Replace(key, "vectors", prefix, 1))
				}
				reply := send(redis, append(words, program)...)
				replies[strconv.Itoa(index)] = reply
				ran++
				if !same(step.Redis.Reply, reply) {
					wrong++
					fmt.Printf("%s: %s: step %d: expected %v, received %v\n", path, each.Name, index, step.Redis.Reply, reply)
				}
			}
		}
	}
	fmt.Printf("%d steps, %d different\n", ran, wrong)
	if wrong > 0 || ran == 0 {
		os.Exit(1)
	}
}
