"""PostgreSQL, MariaDB and Redis servers."""

import signal
import uuid
from typing import ClassVar

from tests.servers.hostile import MARIADB, POSTGRES
from tests.servers.server import Server, ServerError, find


class PostgresServer(Server):
    """A PostgreSQL server."""

    __slots__ = ("_programs",)

    engine = "postgresql"
    account = "postgres"
    # The fast shutdown: open connections are closed, not waited for.
    stop_signal = signal.SIGINT

    def __init__(self, *, durable: bool, hostile: bool = True) -> None:
        """Find the programs and make the folder."""
        # What is on the path may be a link or a wrapper; all programs must be of one version.
        self._programs = find("initdb", "postgresql").resolve().parent
        super().__init__(durable=durable, hostile=hostile)

    def fresh_database(self) -> str:
        """Make a new empty database and return its URL."""
        name = f"t_{uuid.uuid4().hex}"
        self._sql(f'CREATE DATABASE "{name}"')
        return self._url(name)

    def drop(self, url: str) -> None:
        """Remove a database, also while it is in use."""
        name = url.rpartition("/")[2]
        self._sql(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://mimawari@{self.host}:{self.port}/{database}"

    def _create(self) -> None:
        """Make the data folder with `mimawari` as the superuser."""
        command = [self._program("initdb"), "-D", str(self.folder / "data"), "-U", "mimawari"]
        # Sorted by the rules of a language, as most servers are installed; not by code points.
        language = ["--locale-provider=icu", "--icu-locale=en-US"] if self.hostile else []
        order = ["--locale=C.UTF-8", *language, "--no-sync"]
        self._run([*command, "-A", "trust", "-E", "UTF8", *order])

    def _prepare(self) -> None:
        """Make the first database on the server that has just started."""
        self._sql("CREATE DATABASE mimawari")

    def _command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""
        settings = {
            "listen_addresses": self.host,
            "port": self.port,
            "unix_socket_directories": self.folder,
            "max_connections": 200,
            # As a server of some size has it; the first 128 MB hold no index of millions of rows.
            "shared_buffers": "512MB",
            # Segments in the data folder go with it; those in /dev/shm outlive a kill.
            "dynamic_shared_memory_type": "mmap",
            "fsync": "on" if self.durable else "off",
            **(POSTGRES if self.hostile else {}),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        return [self._program("postgres"), "-D", str(self.folder / "data"), *options]

    def _answers(self) -> bool:
        """Tell whether the server takes orders now."""
        try:
            self._client([self._program("pg_isready"), *self._address(), "-t", "1"])
        except ServerError:
            return False
        return True

    def _sql(self, statement: str) -> None:
        """Run one statement as the superuser."""
        options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "mimawari", "-d", "postgres"]
        self._client([self._program("psql"), *self._address(), *options], statement)

    def _address(self) -> list[str]:
        """Return the options by which a client reaches the server."""
        return ["-h", str(self.folder), "-p", str(self.port)]

    def _program(self, name: str) -> str:
        """Return the path of one of PostgreSQL's programs, all of the same version."""
        return str(self._programs / name)


class MariadbServer(Server):
    """A MariaDB server."""

    __slots__ = ("_programs",)

    engine = "mariadb"
    account = "mysql"

    def __init__(self, *, durable: bool, hostile: bool = True) -> None:
        """Find the programs and make the folder."""
        names = ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin")
        self._programs = {name: str(find(name, "mariadb-server")) for name in names}
        super().__init__(durable=durable, hostile=hostile)

    def fresh_database(self) -> str:
        """Make a new empty database and return its URL."""
        name = f"t_{uuid.uuid4().hex}"
        self._sql(f"CREATE DATABASE `{name}`")
        return self._url(name)

    def drop(self, url: str) -> None:
        """Remove a database, also while it is in use."""
        name = url.rpartition("/")[2]
        # A transaction left open would hold up the removal. A connection that has just ended by
        # itself can no longer be killed (error 1094).
        self._sql(
            f"""delimiter //
            BEGIN NOT ATOMIC
                DECLARE CONTINUE HANDLER FOR 1094 BEGIN END;
                FOR user IN (SELECT id FROM information_schema.processlist WHERE db = '{name}') DO
                    KILL user.id;
                END FOR;
            END //
            DROP DATABASE IF EXISTS `{name}` //"""
        )

    def _url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"mariadb://mimawari:secret@{self.host}:{self.port}/{database}"

    def _create(self) -> None:
        """Make the data folder with a `root` who needs no password on the socket."""
        options = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin"]
        self._run([self._programs["mariadb-install-db"], *self._settings(), *options])

    def _prepare(self) -> None:
        """Make the first database and its user on the server that has just started."""
        self._sql(
            "CREATE DATABASE mimawari;"
            f"CREATE USER mimawari@'{self.host}' IDENTIFIED BY 'secret';"
            f"GRANT ALL ON *.* TO mimawari@'{self.host}' WITH GRANT OPTION"
        )

    def _command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""
        network = [f"--port={self.port}", f"--bind-address={self.host}", "--skip-name-resolve"]
        files = [f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}"]
        return [
            self._programs["mariadbd"],
            *self._settings(),
            *network,
            *files,
            "--max-connections=200",
            *self._defaults(),
            # Without fsync the log is still written at each commit, so a kill loses nothing.
            f"--innodb-flush-log-at-trx-commit={1 if self.durable else 2}",
        ]

    def _defaults(self) -> list[str]:
        """Return the options that decide what a session begins with."""
        if self.hostile:
            return [f"--{name}={value}" for name, value in MARIADB.items()]
        return ["--character-set-server=utf8mb4"]

    def _settings(self) -> list[str]:
        """Return the options that making and running the data folder share."""
        files = [f"--datadir={self.folder / 'data'}", f"--tmpdir={self.folder}"]
        return ["--no-defaults", *files, "--innodb-log-file-size=32M"]

    def _answers(self) -> bool:
        """Tell whether the server takes orders now."""
        try:
            self._client([self._programs["mariadb-admin"], *self._address(), "ping"])
        except ServerError:
            return False
        return True

    def _sql(self, statements: str) -> None:
        """Run statements as the superuser, whatever the defaults of the server are."""
        plain = "SET SESSION sql_mode = '', autocommit = 1, tx_read_only = 0;\n"
        self._client([self._programs["mariadb"], *self._address(), "--batch"], plain + statements)

    def _address(self) -> list[str]:
        """Return the options by which a client reaches the server."""
        return ["--no-defaults", f"--socket={self.folder / 'socket'}", "--user=root"]


class RedisServer(Server):
    """A Redis server."""

    __slots__ = ("_free", "_programs")

    engine = "redis"
    account = "redis"
    databases: ClassVar[int] = 1024

    def __init__(self, *, durable: bool, hostile: bool = True) -> None:
        """Find the programs and make the folder."""
        names = ("redis-server", "redis-cli")
        self._programs = {name: str(find(name, "redis-server")) for name in names}
        self._free = list(range(1, self.databases))
        super().__init__(durable=durable, hostile=hostile)

    @property
    def url(self) -> str:
        """Return the URL of the server's first database."""
        return self._url("0")

    def fresh_database(self) -> str:
        """Return the URL of an empty database that nobody else was given."""
        return self._url(str(self._free.pop(0)))

    def drop(self, url: str) -> None:
        """Empty a database, also while it is in use."""
        number = url.rpartition("/")[2]
        self._order("-n", number, "FLUSHDB")
        self._free.append(int(number))

    def _url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"redis://{self.host}:{self.port}/{database}"

    def _create(self) -> None:
        """Leave the folder empty, as Redis needs no more."""

    def _prepare(self) -> None:
        """Leave the server as it is: the first database exists."""

    def _command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""
        settings = {
            "bind": self.host,
            "port": self.port,
            "unixsocket": self.folder / "socket",
            "dir": self.folder,
            "databases": self.databases,
            "save": "",
            "appendonly": "yes",
            # Without fsync the log is still written before each answer, so a kill loses nothing.
            "appendfsync": "always" if self.durable else "no",
        }
        options = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
        return [self._programs["redis-server"], *options]

    def _answers(self) -> bool:
        """Tell whether the server takes orders now."""
        try:
            return self._order("PING") == "PONG\n"
        except ServerError:
            return False

    def _order(self, *words: str) -> str:
        """Give the server an order and return its answer."""
        address = ["-s", str(self.folder / "socket"), "-e"]
        return self._client([self._programs["redis-cli"], *address, *words])
