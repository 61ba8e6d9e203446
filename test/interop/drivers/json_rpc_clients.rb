# Asks by JSON-RPC what programs of the Metasploit Framework ask, by both clients that the framework has of its own:
#
#     ruby json_rpc_clients.rb CHECKOUT URL TOKEN
#
# That of `msf/core/rpc/json`, which needs Debian's ruby-em-http-request, and that of the framework's MCP server with what makes its tools'
# answers of the results. Prints what they made of the answers, as JSON. The log stands in for here.

require 'em-http-request'
require 'json'
require 'securerandom'

checkout, url, token = ARGV

module Msf
  module RPC
    module JSON
    end
  end

  module MCP
    LOG_SOURCE = 'mcp'.freeze
  end
end

LOG_DEBUG = 0
def dlog(*); end

%w[rpc/json/error rpc/json/response rpc/json/request rpc/json/client
   mcp/errors mcp/metasploit/jsonrpc_client mcp/metasploit/response_transformer].each do |file|
  require File.join(checkout, 'lib/msf/core', file)
end

# The deferred results of calls, one after the other, as their result and whether the id came back, or as their error.
def called(deferred)
  outcome = nil
  EM.run do
    request = deferred.call
    asked = JSON.parse(request.instance_variable_get(:@request_options)[:body])['id']
    request.callback do |response|
      outcome = { result: response.result, id: response.id == asked }
      EM.stop
    end
    request.errback do |error|
      known = error.is_a?(Msf::RPC::JSON::ErrorResponse)
      outcome = { failed: error.class.name, code: known ? error.code : nil, message: error.to_s, id: known && error.id == asked }
      EM.stop
    end
  end
  outcome
end

service = "#{url}/api/v1/json-rpc"
db = Msf::RPC::JSON::Client.new(service, api_token: token, namespace: 'db')
within = { workspace: 'default' }
framework = {
  workspaces: -> { db.workspaces },
  hosts: -> { db.hosts(within) },
  some_hosts: -> { db.hosts(within.merge(only_up: true, limit: 1, offset: 1)) },
  by_keyword: -> { db.hosts(workspace: 'lab') },
  services: -> { db.services(within.merge(ports: '1-60')) },
  vulns: -> { db.vulns(within) },
  notes: -> { db.notes(within) },
  loots: -> { db.loots(within) },
  creds: -> { db.creds(within) },
  nobody: -> { db.hosts({ workspace: 'nobody' }) },
  unknown: -> { db.events(within) }
}.transform_values { |call| called(call) }

uri = URI.parse(url)
client = ->(key) { Msf::MCP::Metasploit::JsonRpcClient.new(host: uri.host, port: uri.port, token: key, ssl: false) }
transformer = Msf::MCP::Metasploit::ResponseTransformer
mcp = client.call(token)

def refusal
  yield
rescue Msf::MCP::Error => e
  "#{e.class.name}: #{e.message}"
end

puts JSON.generate(
  framework: framework,
  mcp: {
    hosts: transformer.transform_hosts(mcp.db_hosts(within.merge(addresses: '192.0.2.0/24', only_up: true))),
    services: transformer.transform_services(
      mcp.db_services(within.merge(only_up: true, proto: 'tcp', addresses: '192.0.2.1', ports: '80-443', names: 'https'))
    ),
    vulns: transformer.transform_vulns(
      mcp.db_vulns(within.merge(address: '192.0.2.1', names: 'Heartbleed', ports: '400-500', proto: 'tcp'))
    ),
    other_vulns: transformer.transform_vulns(mcp.db_vulns(within.merge(address: '192.0.2.1', proto: 'udp'))),
    notes: transformer.transform_notes(
      mcp.db_notes(within.merge(address: '192.0.2.1', ntype: 'host.os', ports: '53', proto: 'udp'))
    ),
    other_notes: transformer.transform_notes(mcp.db_notes(within.merge(address: '192.0.2.2'))),
    creds: transformer.transform_creds(mcp.db_creds(within)),
    loots: transformer.transform_loot(mcp.db_loot(within)),
    nobody: refusal { mcp.db_hosts({ workspace: 'nobody' }) },
    stranger: refusal { client.call('wrong').db_hosts(within) }
  }
)
