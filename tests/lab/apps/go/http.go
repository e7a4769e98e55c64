// SPDX-License-Identifier: BSD-3-Clause

// http.go - net/http's way to the network: http HOST
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

func body(answer *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func overHTTP(host string) {
	all(func(number int) error {
		data, err := body(http.Get(fmt.Sprintf("http://%s/bytes/%d", host, sizeOf(number))))
		if err != nil {
			return err
		}
		return verify(number, data)
	})
	upload := pattern(size)
	request, err := http.NewRequest("PUT", "http://"+host+"/upload", bytes.NewReader(upload))
	if err != nil {
		fail(err)
	}
	said, err := body(http.DefaultClient.Do(request))
	if err != nil {
		fail(err)
	}
	if expected := fmt.Sprintf("bytes=%d sha256=%x\n", size, sha256.Sum256(upload)); string(said) != expected {
		fail(fmt.Errorf("the server got %q, not %q", said, expected))
	}
}

func main() {
	if len(os.Args) != 2 {
		fail(errors.New("usage: http HOST"))
	}
	task(overHTTP, os.Args[1])
}
