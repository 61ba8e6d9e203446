# Asks a data service what the console of the Metasploit Framework asks, by the framework's own client classes:
#
#     ruby framework_client.rb CHECKOUT URL TOKEN
#
# Prints what they made of the answers, as JSON. The models, the log and a few constants, which the framework takes from gems and
# files that Debian has not got, stand in for here; what talks and what reads the answers is the checkout's.

require 'active_record'
require 'active_support/all'
require 'json'

checkout, url, token = ARGV
$LOAD_PATH.unshift(File.join(checkout, 'lib'))

ActiveRecord::Base.establish_connection(adapter: 'sqlite3', database: ':memory:')
ActiveRecord::Schema.verbose = false
ActiveRecord::Schema.define do
  create_table(:workspaces) do |t|
    t.string :name, :boundary, :description
    t.integer :owner_id
    t.boolean :limit_to_network, :import_fingerprint
    t.timestamps null: true
  end
  create_table(:hosts) do |t|
    t.integer :workspace_id, :note_count, :vuln_count, :service_count, :host_detail_count, :exploit_attempt_count, :cred_count
    t.string :address, :mac, :comm, :name, :state, :os_name, :os_flavor, :os_sp, :os_lang, :os_family, :arch, :detected_arch,
             :purpose, :info, :comments, :scope, :virtual_host
    t.timestamps null: true
  end
  create_table(:services) do |t|
    t.integer :host_id, :port
    t.string :proto, :state, :name, :info
    t.timestamps null: true
  end
  create_table(:vulns) do |t|
    t.integer :host_id, :service_id, :vuln_detail_count, :vuln_attempt_count, :origin_id
    t.string :name, :info, :origin_type
    t.datetime :exploited_at
    t.timestamps null: true
  end
  create_table(:refs) { |t| t.string :name }
  create_table(:vulns_refs) { |t| t.integer :vuln_id, :ref_id }
  create_table(:notes) do |t|
    t.integer :workspace_id, :host_id, :service_id, :vuln_id
    t.string :ntype
    t.text :data
    t.boolean :critical, :seen
    t.timestamps null: true
  end
  create_table(:sessions) do |t|
    t.integer :host_id, :port, :local_id, :campaign_id, :module_run_id
    t.string :stype, :via_exploit, :via_payload, :desc, :platform, :close_reason
    t.text :datastore
    t.datetime :opened_at, :closed_at, :last_seen
  end
end

module Mdm
  class Model < ActiveRecord::Base
    self.abstract_class = true
  end

  class Workspace < Model
    self.table_name = 'workspaces'
  end

  class Host < Model
    self.table_name = 'hosts'
    belongs_to :workspace, class_name: 'Mdm::Workspace'
  end

  class Service < Model
    self.table_name = 'services'
    belongs_to :host, class_name: 'Mdm::Host'
  end

  class VulnRef < Model
    self.table_name = 'vulns_refs'
    belongs_to :vuln, class_name: 'Mdm::Vuln'
    belongs_to :ref, class_name: 'Mdm::Ref'
  end

  class Ref < Model
    self.table_name = 'refs'
  end

  class Vuln < Model
    self.table_name = 'vulns'
    belongs_to :host, class_name: 'Mdm::Host'
    belongs_to :service, class_name: 'Mdm::Service'
    has_many :vulns_refs, class_name: 'Mdm::VulnRef'
    has_many :refs, through: :vulns_refs, source: :ref, class_name: 'Mdm::Ref'
  end

  class Note < Model
    self.table_name = 'notes'
    belongs_to :host, class_name: 'Mdm::Host'
    serialize :data
  end

  class Session < Model
    self.table_name = 'sessions'
    belongs_to :host, class_name: 'Mdm::Host'
    serialize :datastore
  end
end

module Metasploit
  module Framework
    VERSION = 'of a checkout'.freeze
  end
end

module Msf
  class Session
  end

  class DBManager
    module Workspace
      DEFAULT_WORKSPACE_NAME = 'default'.freeze
    end
  end
end

%i[dlog ilog wlog elog].each { |log| define_method(log) { |message, *| warn(message) } }

require 'metasploit/framework/data_service'
require 'metasploit/framework/data_service/remote/http/core'

service = Metasploit::Framework::DataService::RemoteHTTPDataService.new(url, api_token: token)
abort('the service is not online') unless service.active

def rows(found, *keys)
  found.map { |row| keys.to_h { |key| [key, row.public_send(key)] } }
end

within = { workspace: 'default' }
puts JSON.generate(
  workspace: rows(service.default_workspace, :id, :name, :limit_to_network, :created_at),
  hosts: rows(service.hosts(within.merge(non_dead: true)), :id, :address, :state, :os_name, :name, :created_at),
  all_hosts: service.hosts(within.dup).map(&:address),
  searched: service.hosts(within.merge(search_term: 'web')).map(&:address),
  by_address: service.hosts(within.merge(address: '192.0.2.2')).map(&:address),
  shown: rows(service.hosts(id: 1), :id, :address, :service_count),
  services: service.services(within.dup).map { |s| [s.host.address, s.port, s.proto, s.state, s.name, s.info] },
  vulns: service.vulns(within.dup).map { |v| [v.host.address, v.name, v.info, v.refs.map(&:name)] },
  notes: service.notes(within.dup).map { |n| [n.host&.address, n.ntype, n.data] },
  sessions: rows(service.sessions(within.dup), :id, :stype, :port),
  loots: service.loot(within.dup),
  credentials: service.creds(within.dup),
  event: service.report_event(name: 'ui_command', workspace: 'default', info: { command: 'hosts' }).response_body
)
