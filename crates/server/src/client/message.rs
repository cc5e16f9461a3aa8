//! HTTP/1.1 as far as the client needs it: one request, one answer, whole, in chunks, or until the end of the connection.

use super::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A head or a chunk's length is never so long.
const LINE_MAX: u64 = 64 << 10;
const HEADERS_MAX: usize = 200;

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.read(to),
            Socket::Tcp(s) => s.read(to),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(s) => s.write(from),
            Socket::Tcp(s) => s.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection on which nothing was said yet.
pub(super) struct Connection(BufReader<Socket>);

/// The head of an answer, and its body to be read.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Where the next part of a log begins, if the answer says so.
    pub(super) next: Option<u64>,
    pub(super) body: Body,
}

/// The body of an answer, read as it comes.
pub struct Body {
    from: BufReader<Socket>,
    left: Left,
}

/// What is to come.
enum Left {
    /// So many bytes.
    Bytes(u64),
    /// So many bytes of a chunk, then perhaps more chunks.
    Chunk(u64),
    /// Whatever comes.
    Rest,
}

impl Connection {
    pub(super) fn unix(path: &Path, patience: Duration) -> io::Result<Connection> {
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        Ok(Connection(BufReader::new(Socket::Unix(socket))))
    }

    pub(super) fn tcp(host: &str, patience: Duration) -> io::Result<Connection> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host's name has no address");
        for address in host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, patience.min(Duration::from_secs(10))) {
                Ok(socket) => {
                    socket.set_read_timeout(Some(patience))?;
                    socket.set_write_timeout(Some(patience))?;
                    socket.set_nodelay(true)?;
                    return Ok(Connection(BufReader::new(Socket::Tcp(socket))));
                }
                Err(e) => failed = e,
            }
        }
        Err(failed)
    }

    /// Writes the whole request. A daemon that refuses early (too large, no right) stops reading: that is no error here, its answer is.
    pub(super) fn write_request(
        &mut self,
        method: &str,
        path: &str,
        host: &str,
        token: Option<&str>,
        body: Option<(&str, &[u8])>,
        headers: &[(&str, &str)],
    ) -> Result<(), Error> {
        if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Error::Answer(format!("\"{path}\" is not a path of the API: it must begin with / and be escaped")));
        }
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        let token = token.map(|t| ("authorization", format!("Bearer {t}")));
        let kind = body.map(|(kind, _)| ("content-type", kind.to_string()));
        let length = body.map(|(_, b)| ("content-length", b.len().to_string()));
        let given = headers.iter().map(|(name, value)| (*name, value.to_string()));
        for (name, value) in given.chain(token).chain(kind).chain(length) {
            if value.bytes().any(|b| b.is_ascii_control()) {
                return Err(Error::Answer(format!("the header {name} holds a control character")));
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(body.map_or(&[], |(_, b)| b));
        // If this fails, so does reading the answer, which says more.
        let _ = self.0.get_mut().write_all(&request);
        Ok(())
    }

    pub(super) fn read_answer(mut self) -> io::Result<Answer> {
        loop {
            let status = parse_status(&read_line(&mut self.0)?)?;
            let (left, next) = read_headers(&mut self.0)?;
            // 1xx announce an answer, and are none.
            if status >= 200 {
                let left = if matches!(status, 204 | 304) { Left::Bytes(0) } else { left };
                return Ok(Answer { status, next, body: Body { from: self.0, left } });
            }
        }
    }
}

impl Read for Body {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Left::Chunk(0) = self.left {
            self.left = next_chunk(&mut self.from)?;
        }
        let count = match &mut self.left {
            Left::Rest => return self.from.read(to),
            Left::Bytes(0) => return Ok(0),
            Left::Bytes(left) | Left::Chunk(left) => {
                let room = to.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                let count = self.from.read(&mut to[..room])?;
                *left -= count as u64;
                count
            }
        };
        if count == 0 && !to.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Left::Chunk(0) = self.left {
            // The line break behind a chunk's bytes.
            read_line(&mut self.from)?;
        }
        Ok(count)
    }
}

fn next_chunk(from: &mut impl BufRead) -> io::Result<Left> {
    let line = read_line(from)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    let size = u64::from_str_radix(digits, 16).map_err(|_| not_http("a chunk without its length"))?;
    if size > 0 {
        return Ok(Left::Chunk(size));
    }
    while !read_line(from)?.is_empty() {}
    Ok(Left::Bytes(0))
}

fn parse_status(line: &str) -> io::Result<u16> {
    let mut words = line.split(' ');
    match (words.next(), words.next().map(str::parse)) {
        (Some("HTTP/1.1" | "HTTP/1.0"), Some(Ok(status @ 100..=599))) => Ok(status),
        _ => Err(not_http("its first line is no status")),
    }
}

fn read_headers(from: &mut impl BufRead) -> io::Result<(Left, Option<u64>)> {
    let (mut left, mut next) = (Left::Rest, None);
    for _ in 0..HEADERS_MAX {
        let line = read_line(from)?;
        if line.is_empty() {
            return Ok((left, next));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| not_http("a header without a colon"))?;
        if name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked") {
            left = Left::Chunk(0);
        } else if name.eq_ignore_ascii_case("content-length") && !matches!(left, Left::Chunk(_)) {
            left = Left::Bytes(value.trim().parse().map_err(|_| not_http("a length that is no number"))?);
        } else if name.eq_ignore_ascii_case("stipend-next") {
            next = value.trim().parse().ok();
        }
    }
    Err(not_http("too many headers"))
}

/// A line without its break.
fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.take(LINE_MAX).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(if line.is_empty() { io::ErrorKind::UnexpectedEof.into() } else { not_http("a line without an end") });
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| not_http("a head that is no text"))
}

fn not_http(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
