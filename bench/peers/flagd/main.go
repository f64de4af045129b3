// Command flagd serves the bulk evaluation of OFREP with flagd's evaluator, because the registry does not have
// flagd's own server. Its arguments are the address to listen on and a file with flagd's flag definitions.
//
// It does for each request what flagd's handler does, without metrics, tracing, CORS and logs.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"

	"github.com/open-feature/flagd/core/pkg/evaluator"
	"github.com/open-feature/flagd/core/pkg/logger"
	"github.com/open-feature/flagd/core/pkg/service/ofrep"
	"github.com/open-feature/flagd/core/pkg/store"
	"github.com/open-feature/flagd/core/pkg/sync"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: flagd ADDRESS FLAGS.json")
	}
	flags, err := newEvaluator(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /ofrep/v1/evaluate/flags", func(response http.ResponseWriter, request *http.Request) {
		evaluateAll(flags, response, request)
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

func newEvaluator(file string) (*evaluator.JSON, error) {
	definitions, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	silent := logger.NewLogger(nil, false)
	flags, err := store.NewStore(silent, []string{file})
	if err != nil {
		return nil, err
	}
	resolver := evaluator.NewJSON(silent, flags)
	return resolver, resolver.SetState(sync.DataSync{FlagData: string(definitions), Source: file})
}

func evaluateAll(flags *evaluator.JSON, response http.ResponseWriter, request *http.Request) {
	var body struct {
		Context map[string]any `json:"context"`
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	values, metadata, err := flags.ResolveAllValues(request.Context(), "", body.Context)
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	bytes, err := json.Marshal(ofrep.BulkEvaluationResponseFrom(values, metadata))
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	response.Header().Set("Content-Type", "application/json")
	response.Write(bytes)
}
