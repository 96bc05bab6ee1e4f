// Command kstatus prints the status of objects by the library kstatus, with which Flux and other
// tools judge resources. It reads the objects from standard input as YAML or JSON: a list, or the
// output of `kubectl get -o yaml`. It writes a line of JSON for each, in the same order.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type verdict struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

func main() {
	if err := judge(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func judge(in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	objects, err := parse(text)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for _, object := range objects {
		result, err := status.Compute(&object)
		if err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		said := verdict{object.GetKind(), object.GetName(), result.Status.String(), result.Message}
		if err := lines.Encode(said); err != nil {
			return err
		}
	}
	return nil
}

// parse keeps integers as integers, because the library ignores a generation that is a float.
func parse(text []byte) ([]unstructured.Unstructured, error) {
	text, err := yaml.ToJSON(text)
	if err != nil {
		return nil, err
	}
	var document any
	if err := utiljson.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if list, ok := document.(map[string]any); ok {
		document = list["items"]
	}
	items, ok := document.([]any)
	if !ok {
		return nil, errors.New("neither a list of objects nor an object with items")
	}
	objects := make([]unstructured.Unstructured, len(items))
	for i, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d is no object", i)
		}
		objects[i].SetUnstructuredContent(content)
	}
	return objects, nil
}
