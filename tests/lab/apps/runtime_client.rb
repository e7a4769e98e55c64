# SPDX-License-Identifier: BSD-3-Clause
# runtime_client.rb - Ruby's Net::HTTP in threads, with the task of runtime_client.py
#
#   runtime_client.rb HOST
require 'digest'
require 'net/http'

COUNT = 8
SIZE = 1_000_000
PATTERN = (0..250).map(&:chr).join.b * (SIZE / 251 + 2)

base = "http://#{ARGV[0]}"
COUNT.times.map do |number|
  Thread.new do
    data = Net::HTTP.get(URI("#{base}/bytes/#{200_000 + number}"))
    abort("download #{number}: #{data.size} other bytes") if data != PATTERN[0, 200_000 + number]
  end
end.each(&:join)
up = PATTERN[0, SIZE]
answer = Net::HTTP.start(ARGV[0], 80) { |http| http.send_request('PUT', '/upload', up).body }
expected = "bytes=#{SIZE} sha256=#{Digest::SHA256.hexdigest(up)}\n"
abort("the server got #{answer}, not #{expected}") if answer != expected
puts "#{COUNT} done, #{SIZE} up"
begin
  Net::HTTP.get(URI("#{base}:9999/"))
rescue Errno::ECONNREFUSED
  puts 'refused'
end
