// Writes what it is sent into a file, once, and answers with the number of the line.
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'

const done = new Map() // by Idempotency-Key; a real one outlives the process
let lines = 0

function handle(batch, key) {
  if (!done.has(key)) { // else the transaction was rolled back after the file was written
    const actions = []
    for (const message of batch.messages) {
      if (message.message_type_name !== 'DEFAULT') continue
      appendFileSync(process.env.AUDIT_FILE ?? 'audit.log', message.message_body + '\n')
      const conversation_handle = message.conversation_handle
      actions.push({ send: { conversation_handle, message_type: 'DEFAULT', message_body: `line ${++lines}` } })
      actions.push({ end: { conversation_handle } })
    }
    done.set(key, { actions })
  }
  return done.get(key)
}

createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  try {
    const answer = handle(JSON.parse(Buffer.concat(chunks)), request.headers['idempotency-key'])
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
  } catch (error) {
    response.writeHead(500).end(String(error)) // rolled back, this text in the log, tried again
  }
}).listen(Number(process.env.PORT ?? 9000), '127.0.0.1')
