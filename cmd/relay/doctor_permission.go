package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/bucketbrigade/relay/cmd/relay/settings"
	"github.com/bucketbrigade/relay/store"
)

// permissionChecks try whether these credentials may send each request of a role: by
// default that of a relay. What the role needs to describe the table is tried by doing
// that.
type permissionChecks struct {
	client   *store.Client
	settings *settings.Settings
	role     role

	faults map[store.Action]error // why an action could not be carried out; nil: it could
}

func (p *permissionChecks) gather(ctx context.Context) {
	p.faults = map[store.Action]error{}
	var (
		noting sync.Mutex
		trying sync.WaitGroup
	)
	for _, action := range p.actions() {
		trying.Go(func() {
			reply := p.client.Do(ctx, store.Try{Action: action})
			noting.Lock()
			defer noting.Unlock()
			p.faults[action] = reply.Err
		})
	}
	trying.Wait()
}

// actions are those of the role that can be tried.
func (p *permissionChecks) actions() []store.Action {
	return slices.DeleteFunc(store.Actions(), func(a store.Action) bool { return !slices.Contains(actions(p.role), string(a)) })
}

func (p *permissionChecks) judge() []checkDocument {
	fine := fmt.Sprintf("each that the role %s needs is permitted to these credentials", p.role)
	return eachOf(checkPermission, "action", fine, p.actions(), func(action store.Action) *checkDocument {
		fault := p.faults[action]
		if fault == nil {
			return nil
		}
		document := skipped(checkPermission, string(action), notSeen(fault))
		if errors.Is(fault, store.ErrDenied) {
			document = failed(checkPermission, string(action), fmt.Sprintf("is not permitted to these credentials, and the role %s needs it: %s", p.role, brief(fault)),
				fmt.Sprintf("if they are those of a %s, give them what relay table iam --role %s --table %s prints; if not, run doctor with others, or with another --role",
					p.role, p.role, p.settings.Relay.Table))
		}
		return &document
	})
}
