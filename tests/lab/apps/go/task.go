// SPDX-License-Identifier: BSD-3-Clause

// task.go - the task of runtime_client.py, for the Go programs beside it: net.go and http.go, each of them built with this
// file and the standard library alone, so that they build wherever there is a Go compiler
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

const (
	count = 8
	size  = 1000000
)

func pattern(length int) []byte {
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(i % 251)
	}
	return data
}

func sizeOf(number int) int {
	return 200000 + number
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func verify(number int, data []byte) error {
	if !bytes.Equal(data, pattern(sizeOf(number))) {
		return fmt.Errorf("connection %d: %d other bytes", number, len(data))
	}
	return nil
}

// Calls do() for all numbers at once.
func all(do func(number int) error) {
	results := make(chan error, count)
	for number := 0; number < count; number++ {
		go func(number int) { results <- do(number) }(number)
	}
	for number := 0; number < count; number++ {
		if err := <-results; err != nil {
			fail(err)
		}
	}
}

func task(way func(host string), host string) {
	way(host)
	fmt.Printf("%d done, %d up\n", count, size)
	if _, err := net.Dial("tcp", host+":9999"); !errors.Is(err, syscall.ECONNREFUSED) {
		fail(fmt.Errorf("not refused: %v", err))
	}
	fmt.Println("refused")
}
