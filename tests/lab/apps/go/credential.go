// SPDX-License-Identifier: BSD-3-Clause

// credential.go - a credential helper of Git (gitcredentials(7)) that asks the server itself: credential get
//
// It stands for helpers in Go that fetch a token over HTTP, such as those for OAuth.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	if len(os.Args) != 2 || os.Args[1] != "get" {
		return // there is nothing to store or to erase
	}
	fields := map[string]string{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if parts := strings.SplitN(lines.Text(), "=", 2); len(parts) == 2 {
			fields[parts[0]] = parts[1]
		}
	}
	answer, err := http.Get("http://" + fields["host"] + "/token")
	if err != nil {
		fail(err)
	}
	defer answer.Body.Close()
	token, err := io.ReadAll(answer.Body)
	if err != nil {
		fail(err)
	}
	fmt.Printf("username=lab\npassword=%s\n", token)
}
