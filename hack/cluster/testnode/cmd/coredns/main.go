// Command coredns is CoreDNS with the plugins that a cluster's name service needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// Queries pass through the plugins in this order, which is upstream's.
	dnsserver.Directives = []string{
		"health", "ready", "errors", "cache", "kubernetes", "forward",
	}
	coremain.Run()
}
