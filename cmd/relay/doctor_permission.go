package main

import (
	"context"
	"errors"
	"sync"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// permissionChecks try whether these credentials may send each request of a relay.
type permissionChecks struct {
	client   *store.Client
	settings *settings.Settings

	faults map[store.Action]error // why an action could not be carried out; nil: it could
}

func (p *permissionChecks) gather(ctx context.Context) {
	p.faults = map[store.Action]error{}
	var (
		noting sync.Mutex
		trying sync.WaitGroup
	)
	for _, action := range store.Actions() {
		trying.Go(func() {
			reply := p.client.Do(ctx, store.Try{Action: action})
			noting.Lock()
			defer noting.Unlock()
			p.faults[action] = reply.Err
		})
	}
	trying.Wait()
}

func (p *permissionChecks) judge() []checkDocument {
	return eachOf(checkPermission, "action", "each action that a relay needs is permitted to these credentials", store.Actions(),
		func(action store.Action) *checkDocument {
			fault := p.faults[action]
			if fault == nil {
				return nil
			}
			document := skipped(checkPermission, string(action), notSeen(fault))
			if errors.Is(fault, store.ErrDenied) {
				document = failed(checkPermission, string(action), "is not permitted to these credentials: "+brief(fault),
					"if they are those of the relays, allow it on table "+p.settings.Relay.Table+"; if not, run doctor with those of the relays")
			}
			return &document
		})
}
